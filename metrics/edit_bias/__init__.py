"""D per demographic group before and after an edit."""
