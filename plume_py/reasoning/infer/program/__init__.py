"""Programs: the intermediate form, its rules, and its front ends; what is shown of it as SQL."""
