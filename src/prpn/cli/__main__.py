"""`python -m prpn.cli`."""

from prpn.cli import main

main()
