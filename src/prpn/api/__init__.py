"""What `import prpn` gives: models that parse and speak, arrays for engines, training and evaluation by one call each."""
