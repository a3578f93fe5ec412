"""A small CRM."""
