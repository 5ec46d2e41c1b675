"""The paper's experiment, run again: its tables and figures with our numbers beside the printed ones."""
