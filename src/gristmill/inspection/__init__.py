"""Looking at datasets of any size: pages, search, conditions, statistics, differences, labels."""
