"""The dictionary of a report, one module for each section."""
