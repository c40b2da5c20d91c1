# δ-adjustment in R: the reference values of tests/sensitivity/r_delta.json.
# The tables are the imputations of tests/multiple/r_pool.json. Needs R with mice and jsonlite.
# Rscript benchmarks/r_delta.R > tests/sensitivity/r_delta.json
suppressMessages({library(mice); library(jsonlite)})

long <- as.data.frame(fromJSON("tests/multiple/r_pool.json")$statsmodels$data)
incomplete <- long[long$.imp == 0, ]
missing <- is.na(incomplete$y)

adjusted <- function(delta) {
  fits <- lapply(1:max(long$.imp), function(k) {
    table <- long[long$.imp == k, ]
    table$y[missing] <- table$y[missing] + delta[missing]
    lm(y ~ x1 + x2 + g, table)
  })
  found <- summary(pool(as.mira(fits)), conf.int = TRUE)
  found <- found[found$term == "x1", ]
  list(estimate = found$estimate, std_error = found$std.error, p_value = found$p.value,
       conf_low = found[["2.5 %"]], conf_high = found[["97.5 %"]])
}

deltas <- c(-2, -1, 0, 1, 2)
n <- length(missing)
all <- lapply(deltas, function(d) adjusted(rep(d, n)))
grid <- expand.grid(one = deltas, zero = deltas)
by_z <- lapply(seq_len(nrow(grid)), function(k) {
  adjusted(ifelse(incomplete$z == 1, grid$one[k], grid$zero[k]))
})
result <- list(mice = as.character(packageVersion("mice")), deltas = deltas, all = all,
               grid = grid, by_z = by_z)
cat(toJSON(result, digits = NA, auto_unbox = TRUE, dataframe = "columns"), "\n")
