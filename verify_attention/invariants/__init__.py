"""The claims, one a file: each module has one `INVARIANT`, an equation with two independent sides."""
