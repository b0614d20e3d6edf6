"""What was observed: visits read from files, the public places they happened at, slots made of them, and writing."""
