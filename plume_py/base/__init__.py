"""What knows nothing of histories: errors, exit codes, text, files, limits, processes, kernels, formulas, SQL."""
