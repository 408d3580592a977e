"""Pages with plots, each one file that needs no network: `tmaops report`, `tmaops resample --plot`, `tmaops dataset inspect --html`."""
