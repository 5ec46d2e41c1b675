"""One module for each engine; `genm.connect.registry` names them."""
