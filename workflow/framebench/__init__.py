"""The driver's half: from configuration to cases, from records to tables and report."""
