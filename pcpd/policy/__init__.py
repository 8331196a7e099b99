"""The words of access: context, grants and decisions. Pure, like `pages`."""
