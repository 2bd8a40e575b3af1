"""Label Studio: tasks and labelling configurations out, results in."""
