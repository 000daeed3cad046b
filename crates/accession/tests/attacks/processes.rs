//! Workers, guards and databases that die or start at the wrong moment.
