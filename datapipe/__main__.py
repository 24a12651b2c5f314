"""`python -m datapipe`: the command line where no console script is on the path."""

from datapipe.cli import main

if __name__ == "__main__":
    main()
