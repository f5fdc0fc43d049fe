"""The driver's half of Framebench: from configuration to cases, from records to tables and report."""
