"""What runs cells: processes of this machine, or Ray."""
