"""The paper: SemanticSimilarity, SemanticClustering, PrivacyTest, GenerateFake, and the profiles under them."""
