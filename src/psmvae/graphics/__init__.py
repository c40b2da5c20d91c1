"""What all pictures share: colours, labels and axes; matplotlib is imported when one is drawn."""
