"""The models that come with the package, each a folder as `prpn train` and `prpn distill` make it."""
