"""A fleet under load that is deployed anew twice, killed and put to sleep: ``make fleet``."""
