"""What a campaign found: tables, plots and pages made from its results."""
