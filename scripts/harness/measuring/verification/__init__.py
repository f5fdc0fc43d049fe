"""Whether what ran is what was asked, observed and not believed."""
