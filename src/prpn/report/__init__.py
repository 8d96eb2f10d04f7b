"""What people look at: drawings in the terminal, figures, tables and pages."""
