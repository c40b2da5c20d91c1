"""Pictures of the parts of a report, on matplotlib axes."""
