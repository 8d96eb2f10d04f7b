"""`python -m prpn`."""

from prpn.cli import main

main()
