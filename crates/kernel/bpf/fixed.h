/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Numbers with a fixed point, because a kernel has no others. A name ends in the number of fraction bits: q20, q16, q4. */
#pragma once

#define ONE_Q20 (1ULL << 20)

/* The square root by Newton's method, to the last bit but one. A function of its own is verified once, not at every call. */
__noinline __u64 square_root(__u64 value)
{
	__u64 left = value, root = 1;

	/* The first guess is at most twice the root: five steps make it exact to a part in 10^9, six to 10^18. */
	if (left >> 32) { left >>= 32; root <<= 16; }
	if (left >> 16) { left >>= 16; root <<= 8; }
	if (left >> 8) { left >>= 8; root <<= 4; }
	if (left >> 4) { left >>= 4; root <<= 2; }
	if (left >> 2)
		root <<= 1;
	for (int i = 0; i < 7; i++)
		root = (root + value / root) / 2;
	return root;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 most(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Zero where the difference would be below it. */
static __always_inline __u64 above(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}
