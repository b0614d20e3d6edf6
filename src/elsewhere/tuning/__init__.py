"""Settings of the deniable mode for a wanted acceptance, found on people who will be no seeds."""
