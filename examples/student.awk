# Return the 97.5 % quantile of Student's t with v degrees of freedom: up to 10 from a
# table, then by an expansion in 1/v (Abramowitz and Stegun, 26.7.5)
function student(v,   z, f) {
	if (v <= 10) {
		split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 " \
		    "2.262 2.228", f, " ")
		return f[v]
	}
	z = 1.959964
	return z + (z^3 + z) / 4 / v + (5 * z^5 + 16 * z^3 + 3 * z) / 96 / v^2 + \
	    (3 * z^7 + 19 * z^5 + 17 * z^3 - 15 * z) / 384 / v^3
}
