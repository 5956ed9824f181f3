"""Starting and finding the clusters that executors run on: Ray by itself, and Ray on Slurm."""
