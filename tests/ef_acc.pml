/*
 * The delivery protocol, for spin: one device, its link, its receiver and the
 * aggregator that closes steps; man/ace-compress.1 and man/ace-recv.1 in words.
 *
 *   spin -a -DBUG=0 ef_acc.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan
 *
 * What is watched.  The gradient of step u is one unit of mass.  A target is a
 * set of units, its code any subset, the residual the rest: whatever a codec
 * may do to one element.  At every moment each unit of an absorbed step is in
 * one place and no other:
 *
 *   the residual, a pending shard that is not accepted, an accepted shard
 *
 * and no name ever stands for two shards.
 *
 * What may happen.  The link may lose, repeat, delay and reorder: what was once
 * sent can arrive at any later moment, any number of times; so can receipts.
 * Programs may be killed anywhere: they are rules that look only at what is on
 * disk, so a rule that does not fire is a program that was killed before it.
 * The power may fail, on either side, at any time: then what was renamed or
 * linked and not synced is there or is not.  The deadline may come at any time.
 * None of this is counted: it happens as often as it can.
 *
 * Bounds: STEPS steps, WINDOW shards in flight, two connections.  3 and 2 are
 * the largest that fit a minute (0.7 million states, 0.3 GB); an error of BUG 1
 * to 11 shows with 2 and 2 in a second.
 *
 * BUG, 1 to 6 the designs that lose or repeat, 7 to 11 what the syncs and the
 * lock are for; in each of them spin has to find an error:
 *
 *   1  the shard is sent, then the residual saved
 *   2  the residual is saved, then the shard sent, which is nowhere else
 *   3  who tries again codes again
 *   4  the receiver takes what it has already
 *   5  a rejection is told and not kept
 *   6  a shard is forgotten once it was sent
 *   7  the receiver answers before its directory is synced
 *   8  the device sends before its directory is synced
 *   9  a step may close between the look whether it is open and the link
 *  10  a manifest is written while a shard it lists is not synced
 *  11  a rejection is kept while others may still accept
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef STEPS
#define STEPS 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif

#define bit(m, u) (((m) >> (u)) & 1)

/* ---- the device's disk: as seen, and as it is after a power loss ---- */

byte step, e;			/* steps absorbed; the residual */
byte pend;			/* steps with a pending shard */
byte code[STEPS];		/* what it holds */
byte old_step, old_e, old_pend;
byte old_code[STEPS];
bool synced = true;		/* both are the same */
byte got, back;			/* receipts: accepted; rejected */

/* ---- the link: what was ever sent ---- */

byte sent[STEPS];		/* bit m: a shard of this name with code m */
byte said_yes, said_no;		/* receipts */

/* ---- the receiver's disk: 0 not there, 1 seen, 2 synced ---- */

byte have[STEPS], what[STEPS];	/* a shard, and its code */
byte times[STEPS];		/* how often it was taken: 1, or BUG 4 */
byte no[STEPS];			/* its rejection */
byte closed[STEPS];
byte listed;			/* steps whose manifest lists the shard */
byte busy;			/* who hold the run's lock, shared */

#define accepted(t) (closed[t] != 0 -> bit(listed, t) : have[t] != 0)

byte u, t, k;			/* of the check */

inline check()
{
	u = 0;
	do
	:: u < STEPS ->
		k = bit(e, u);
		t = 0;
		do
		:: t < STEPS ->
			if
			:: accepted(t) -> k = k + times[t] * bit(what[t], u)
			:: else
			fi;
			if
			:: bit(pend, t) && !(accepted(t) &&
			    what[t] == code[t]) -> k = k + bit(code[t], u)
			:: else
			fi;
			t++
		:: else -> break
		od;
		assert(k == (u < step));
		u++
	:: else -> break
	od;
	u = 0; t = 0; k = 0
}

/* ---- the device ---- */

byte acc, c, i, n;		/* of one atomic step, zero between them */

/* What is kept becomes durable, or a power loss takes it back. */
inline save()
{
	old_step = step; old_e = e; old_pend = pend;
	i = 0;
	do
	:: i < STEPS -> old_code[i] = code[i]; i++
	:: else -> break
	od;
	i = 0;
	synced = true
}

/* acc: the residual, the next gradient, and what was rejected.  Receipts are
 * obeyed: those shards are not pending any more. */
inline target()
{
	acc = e | (1 << step);
	n = 0;
	i = 0;
	do
	:: i < STEPS && bit(pend, i) && bit(back, i) && !bit(got, i) ->
		acc = acc | code[i]; pend = pend & ~(1 << i); code[i] = 0; i++
	:: i < STEPS && bit(pend, i) && bit(got, i) ->
		pend = pend & ~(1 << i); code[i] = 0; i++
	:: i < STEPS && bit(pend, i) && !bit(got, i) && !bit(back, i) ->
		n++; i++
	:: i < STEPS && !bit(pend, i) -> i++
	:: else -> break
	od;
	i = 0
}

/* c: any part of it. */
inline coded()
{
	c = 0;
	i = 0;
	do
	:: i < STEPS && bit(acc, i) -> c = c | (1 << i); i++
	:: i < STEPS -> i++
	:: else -> break
	od;
	i = 0
}

/* How many would stay pending. */
inline waiting()
{
	n = 0;
	i = 0;
	do
	:: i < STEPS -> n = n + (bit(pend, i) && !bit(got, i) &&
	    !bit(back, i)); i++
	:: else -> break
	od;
	i = 0
}

inline commit()
{
	e = acc & ~c;
#if BUG != 2
	pend = pend | (1 << step);
	code[step] = c;
#endif
	step++;
	synced = false
}

active proctype device()
{
	byte mine, name, s;	/* BUG 1, 2, 3: what only the process knows */

end:	do
	/* absorb */
	:: atomic {
		step < STEPS ->
		waiting();
		if
		:: n < WINDOW ->
			n = 0;
#if BUG == 1
			/* sent first, then committed, if it lives so long */
			acc = e | (1 << step);
			coded();
			sent[step] = sent[step] | (1 << c);
			if
			:: target(); n = 0; c = c & acc; commit(); save()
			:: skip
			fi;
#else
			target();
			n = 0;
			coded();
			name = step;
			mine = c;
			commit();
#if BUG == 2
			save();
			if
			:: sent[name] = sent[name] | (1 << mine)
			:: skip
			fi;
#endif
			name = 0;
			mine = 0;
#endif
			acc = 0; c = 0;
#if BUG != 2 && BUG != 1
			check()
#endif
		:: else -> n = 0
		fi
	   }
	/* the directory is synced */
	:: atomic { !synced -> save() }
	/* pending shards are sent, as often as one likes */
	:: atomic {
		(synced || BUG == 8) && pend != 0 ->
		s = 0;
		do
		:: s < STEPS - 1 -> s++
		:: break
		od;
		if
		:: bit(pend, s) ->
#if BUG == 3
			/* from the old residual, which would still be there */
			acc = (e | code[s]);
			coded();
			e = acc & ~c;
			code[s] = c;
			acc = 0; c = 0;
			save();
#endif
			sent[s] = sent[s] | (1 << code[s]);
#if BUG == 6
			pend = pend & ~(1 << s);
			code[s] = 0;
			save();
#endif
		:: else
		fi;
		s = 0
	   }
	/* receipts arrive; an accepted one is final */
	:: atomic { (said_yes & ~got) != 0 -> got = said_yes }
	:: atomic { (said_no & ~back) != 0 -> back = said_no }
	/* the power fails */
	:: atomic {
		!synced ->
		step = old_step; e = old_e; pend = old_pend;
		i = 0;
		do
		:: i < STEPS -> code[i] = old_code[i]; i++
		:: else -> break
		od;
		i = 0;
		synced = true;
		check()
	   }
	od
}

/* ---- the receiver ---- */

#define durable 2
#define answer_after (BUG == 7 -> 1 : durable)

inline any_step(s)
{
	s = 0;
	do
	:: s < STEPS - 1 -> s++
	:: break
	od
}

inline any_code(m)
{
	m = 0;
	do
	:: m < (1 << STEPS) - 1 -> m++
	:: break
	od
}

/* Two connections, or as many as one likes one after the other. */
active [2] proctype receiver()
{
	byte s, m;		/* the shard at hand */

end:	do
	/* a shard arrives, any that was sent; with the lock, shared, it is
	 * looked whether it is known by name */
	:: atomic {
		any_step(s);
		any_code(m);
		if
		:: bit(sent[s], m) && closed[s] == 0 && no[s] == 0 &&
		    have[s] == 0 ->
			busy++;
			goto new
		:: bit(sent[s], m) && (closed[s] != 0 || no[s] != 0 ||
		    have[s] != 0) ->
			/* two shards of one name */
			assert(!((have[s] != 0 || no[s] != 0) &&
			    what[s] != m));
#if BUG == 4
			if
			:: closed[s] == 0 && have[s] != 0 ->
				times[s] = 2;
				check()
			:: else
			fi
#endif
		:: else
		fi;
		s = 0; m = 0
	   }
	/* a sync of the step's directory, or the system does it by itself */
	:: atomic {
		any_step(s);
		have[s] = (have[s] != 0 -> durable : 0);
		no[s] = (no[s] != 0 -> durable : 0);
		closed[s] = (closed[s] != 0 -> durable : 0);
		s = 0
	   }
	/* an answer, to any shard that was sent */
	:: atomic {
		any_step(s);
		if
		:: sent[s] != 0 && closed[s] >= answer_after &&
		    bit(listed, s) -> said_yes = said_yes | (1 << s)
		:: sent[s] != 0 && closed[s] >= answer_after &&
		    !bit(listed, s) -> said_no = said_no | (1 << s)
		:: closed[s] == 0 && no[s] >= answer_after ->
			said_no = said_no | (1 << s)
		:: closed[s] == 0 && no[s] == 0 && have[s] >= answer_after ->
			said_yes = said_yes | (1 << s)
		:: else
		fi;
		s = 0
	   }
	od;
new:	if
	:: atomic {
		/* taken: the link makes the name, or it is there */
		if
		:: have[s] == 0 ->
			have[s] = 1; what[s] = m; times[s] = 1
		:: else -> assert(what[s] == m)
		fi;
		check();
		goto linked
	   }
	:: atomic {
		/* refused: with the lock for itself */
		have[s] == 0 && no[s] == 0 && (busy <= 1 || BUG == 11) ->
#if BUG == 5
		said_no = said_no | (1 << s);
#else
		no[s] = 1; what[s] = m;
#endif
		busy--;
		s = 0; m = 0;
		goto end
	   }
	:: atomic {
		/* killed */
		busy--;
		s = 0; m = 0;
		goto end
	   }
	fi;
linked:	if
	:: atomic {
		/* synced, and answered as decided: nobody closed meanwhile */
#if BUG != 7
		have[s] = (have[s] != 0 -> durable : 0);
#endif
		said_yes = said_yes | (1 << s);
		busy--;
		s = 0; m = 0;
		goto end
	   }
	:: atomic {
		/* killed */
		busy--;
		s = 0; m = 0;
		goto end
	   }
	fi
}

/* ---- the aggregator, and the power of the receiver's machine ---- */

active proctype aggregator()
{
	byte s;

end:	do
	:: atomic {
		busy == 0 || BUG == 9 ->	/* the lock, for itself */
		s = 0;
		do
		:: s < STEPS && closed[s] != 0 -> s++
		:: else -> break
		od;
		if
		:: s < STEPS ->
#if BUG != 10
			have[s] = (have[s] != 0 -> durable : 0);
			no[s] = (no[s] != 0 -> durable : 0);
#endif
			closed[s] = 1;
			listed = listed | ((have[s] != 0) << s);
			check()
		:: else
		fi;
		s = 0
	   }
	/* all its processes are gone, and each change that was not synced has
	 * come to pass or has not */
	:: atomic {
		busy == 0 ->
		s = 0;
		do
		:: s < STEPS ->
			if
			:: closed[s] == 1 ->
				closed[s] = 0; listed = listed & ~(1 << s)
			:: closed[s] == 1 -> closed[s] = 2
			:: else
			fi;
			if
			:: have[s] == 1 ->
				/* what a manifest lists has to be there */
				assert(!(closed[s] == 2 && bit(listed, s)));
				have[s] = 0; times[s] = 0; what[s] = 0
			:: have[s] == 1 -> have[s] = 2
			:: else
			fi;
			if
			:: no[s] == 1 -> no[s] = 0; what[s] = 0
			:: no[s] == 1 -> no[s] = 2
			:: else
			fi;
			s++
		:: else -> break
		od;
		s = 0;
		check()
	   }
	od
}
