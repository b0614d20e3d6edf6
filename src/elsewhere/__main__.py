"""`python -m elsewhere` is the command `elsewhere`."""

from elsewhere.cli import main

if __name__ == "__main__":
    main()
