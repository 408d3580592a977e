from tmaops.cli import main

main()
