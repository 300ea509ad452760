from timediff.cli import main

main()
