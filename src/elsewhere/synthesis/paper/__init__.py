"""The paper's generator: semantic seed, decoder, attempts at a fake."""
