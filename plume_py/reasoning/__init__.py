"""Questions about programs and levels: synth, predict, allocate, infer. Nothing below imports them."""
