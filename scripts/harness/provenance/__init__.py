"""Where a figure comes from: code, packages, environment, machine."""
