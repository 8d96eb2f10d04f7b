"""What `import prpn` gives: models that parse and speak, arrays for engines, one call to train or to evaluate."""
