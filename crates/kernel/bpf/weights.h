/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Which group a socket is in and which weight it has there: the first rule that is for it. User space writes them (src/weights.rs). */
#pragma once

#define MOST_RULES 64
#define ONE_Q16 (1U << 16)
#define MOST_GROUPS 16
#define LONGEST_NAME 32

/* Zero means any, but in the address, where the mask says which bits matter. */
struct rule {
	__u32 address[4];
	__u32 mask[4];
	__u64 cgroup;
	__u32 weight_q16;
	__u16 local_port;
	__u16 remote_port;
	__u32 group;
	__u32 padding;
};

struct rules {
	__u32 count;
	__u32 default_q16;
	/* The rest of the head is for user space alone. Which groups, by their numbers' bits, programs have asked for that give weights themselves. */
	__u32 asked_for;
	__u32 padding;
	/* What no rule is for is in the first group. */
	char names[MOST_GROUPS][LONGEST_NAME];
	struct rule rule[MOST_RULES];
};

/* What a program gives a socket of its own in place of what the rules say. */
struct given {
	__u32 weight_q16;
	__u32 group;
};

static __always_inline __u32 weight_of(const struct rules *rules, struct sock *sk, __u32 *group)
{
	__u32 address[4] = {}, count = rules->count;
	__u16 local_port = sk->__sk_common.skc_num, remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	__u64 cgroup = 0;

	*group = 0;
	if (sk->__sk_common.skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++)
			address[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
	} else {
		/* As IPv6 writes it. */
		address[2] = bpf_htonl(0xffff);
		address[3] = sk->__sk_common.skc_daddr;
	}
	if (bpf_core_field_exists(sk->sk_cgrp_data))
		cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	for (__u32 i = 0; i < MOST_RULES; i++) {
		const struct rule *rule = &rules->rule[i];

		if (i >= count)
			break;
		if (((address[0] & rule->mask[0]) ^ rule->address[0]) | ((address[1] & rule->mask[1]) ^ rule->address[1]) |
		    ((address[2] & rule->mask[2]) ^ rule->address[2]) | ((address[3] & rule->mask[3]) ^ rule->address[3]))
			continue;
		if ((rule->local_port && rule->local_port != local_port) || (rule->remote_port && rule->remote_port != remote_port))
			continue;
		if (rule->cgroup && rule->cgroup != cgroup)
			continue;
		*group = rule->group < MOST_GROUPS ? rule->group : 0;
		return rule->weight_q16;
	}
	return rules->default_q16;
}
