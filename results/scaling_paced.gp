# SPDX-License-Identifier: Apache-2.0
# Speed-up over ranks, from results/scaling_paced.csv (written by `echelon report`); run in results/:
#   gnuplot scaling_paced.gp                      writes scaling_paced.svg
#   gnuplot -e "png = 1" scaling_paced.gp         writes scaling_paced.png, to look at
if (exists("png")) {
  set terminal pngcairo size 760,400 background "white" font "sans,12"
  set output "scaling_paced.png"
} else {
  set terminal svg size 760,400 background "white" font "sans-serif,14"
  set output "scaling_paced.svg"
}
set datafile separator ","
set title "LeNet, global batch 256, 1 rank a host, 100 Mbit/s links (paced devices)"
set xlabel "ranks"
set ylabel "speed-up"
set xtics (1, 2, 4, 8)
set ytics 0, 1, 8
set xrange [0.5:8.5]
set yrange [0:8.5]
set grid lc rgb "#dddddd"
set border 3
set tics nomirror
set key left top reverse Left samplen 3 spacing 1.2

# Medians of three runs, with the slowest and the fastest.
file = "scaling_paced.csv"
set datafile columnheaders
of(name, what) = strcol("name") eq name ? column("speed_up") * column(what) / column("samples_per_s") : NaN
study(i) = word("paced-int8 paced-layers paced-none", i)
title(i) = i == 1 ? "overlap = layers, codec = int8" : i == 2 ? "overlap = layers" : "overlap = none"
colour(i) = word("#1b7837 #2166ac #b2182b", i)
plot x with lines lw 1.5 dt 2 lc rgb "#888888" title "ideal", \
  for [i = 1:3] file using \
    "ranks":(of(study(i), "samples_per_s")):(of(study(i), "samples_per_s_low")):(of(study(i), "samples_per_s_high")) \
    with yerrorbars lw 1.5 pt 7 ps 0.2 lc rgb colour(i) notitle, \
  for [i = 1:3] file using "ranks":(of(study(i), "samples_per_s")) with linespoints \
    lw 2.5 pt 7 ps 0.7 lc rgb colour(i) title title(i)
