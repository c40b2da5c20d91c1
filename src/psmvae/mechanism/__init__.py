"""Values that are missing because of what they are: find it, and correct for it.

The method is a tilt of the odds by shadow variables (d'Haultfoeuille 2010; Miao and Tchetgen
Tchetgen 2016; Kim and Yu 2011). `odds` has its two equations, `observed` the distribution of a
column among the rows where it is observed, `families` the candidates for the log odds γ of going
missing, `rivals` the explanation of the masks by the other columns, `column` puts them together.
"""
