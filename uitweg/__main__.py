"""`python -m uitweg`: the same as the command."""

from uitweg.main import main

if __name__ == "__main__":
    main()
