"""Hints for the exercises, by the name of the check: from a gentle push to nearly all of it. Only the last may give a formula."""

HINTS: dict[str, tuple[str, ...]] = {
    "check_tpot": (
        "Draw the output tokens as dots on a time line. TPOT is the mean gap between neighbours. How many gaps are there?",
        "The first dot stands at 0.45 s and the last at 2.43 s. What lies before the first dot is TTFT's.",
        "(last - first) / (output tokens - 1), both times in seconds.",
    ),
    "check_passes": (
        "Reading and writing use passes differently. How many tokens can go into a pass together, and how many come out?",
        "The prompt goes in as a whole, and that one pass already writes the first token of the answer.",
        "One prefill, and a decode step for each output token after the first: 1 + (N - 1).",
    ),
    "check_shape": (
        "A shape describes one user's tokens; the batch says how many users there are. Which numbers belong to one user?",
        "Cached tokens come on top of the input tokens. So the shared prefix is one number, and what is new is another.",
        "As text a shape is CACHED+INPUTxOUTPUT@BATCH. Each of the four numbers stands in the exercise as it is.",
    ),
    "check_read_cost": (
        "Which of a run's times ends at the moment the prompt has been read?",
        "That is TTFT, and all input tokens share it, because they are read in one pass.",
        "chat.median(metrics.ttft_s) / chat.input_tokens is in seconds. One more factor makes it milliseconds.",
    ),
    "check_shorter_answer": (
        "The total has a part for reading and a part for writing. Which of them does a shorter answer change?",
        "Reading stays. The prefill writes the first of the 12 tokens: how many steps are left?",
        "TTFT + (N - 1) * TPOT with N = 12, from rag.median(metrics.ttft_s) and rag.median(metrics.tpot_s).",
    ),
    "check_order": (
        "They have equally many tokens, so the sum decides nothing. Count passes instead: how many does each request run?",
        "The whole prompt takes one pass, however long. Each written token after the first takes another.",
        "So the number after the x decides. Sort by it, the smallest first.",
    ),
    "check_generate": (
        "Two functions do all the work. Which of them is called once, and which again and again?",
        "prefill reads the prompt and returns the first id. Each decode_step takes the newest id, and all share one cache.",
        "written = [loop.prefill(model, input_ids, cache)], then append loop.decode_step(model, written[-1], cache) until "
        "there are enough; torch.cat(written, dim=1) makes one tensor of them.",
    ),
    "check_kv_bytes": (
        "These are two questions: what does one token leave behind, and how many tokens are in the cache at the end?",
        "A token leaves a key and a value in each layer for each key-value head. And the last token written: was it ever read?",
        "2 * num_hidden_layers * num_key_value_heads * head_dim * itemsize for a token, times input + output - 1 tokens.",
    ),
    "check_marginal_write": (
        "The two requests differ in one thing only. What they share cancels out when you subtract.",
        "Subtract the totals. How many more tokens did the longer answer write in that time?",
        "(total of longer_answer - total of base) / (40 - 8) is in seconds a token. Milliseconds are asked.",
    ),
    "check_marginal_read": (
        "One more token is a difference. What do the two requests share, and in what do they differ?",
        "Reading ends at the first token, so subtract the two TTFTs. The fixed cost of a pass is gone then.",
        "(TTFT of long - TTFT of short) / (1205 - 240) is in seconds a token. Milliseconds are asked.",
    ),
    "check_total_from_terms": (
        "Take the request apart: one prefill, and then the steps. How many steps does an answer of 101 tokens need?",
        "A step pays for its context, and the context grows by one each time. Its average is all you need.",
        "0.050 + 1000 * 0.001 for the prefill; then 100 * (0.040 + 5e-6 * the average of 1,001 to 1,100).",
    ),
    "check_context_that_doubles": (
        "A step has a part that is always the same and a part that grows. How large is the second when it doubles the first?",
        "As large as the first: 40 ms. Each token of context adds 5 us to it. Bring both to the same unit.",
        "0.040 s / 0.000005 s.",
    ),
    "check_batch_throughput": (
        "Look at one step of the batch. How many tokens does it write, and how long does it take?",
        "It writes one for each sequence and takes one TPOT. A rate is tokens over seconds.",
        "eight.batch_size / eight.median(metrics.tpot_s)",
    ),
    "check_largest_batch": (
        "What exactly is promised? Work out the longest wait that is allowed, from the reader who is alone.",
        "Compare each batch's TPOT with that wait, and keep those that stay within it. Then take the largest.",
        "max(B for B in sizes if tpot[B] <= 2 * tpot[1])",
    ),
    "check_cheaper_token": (
        "A step costs the machine its time. Among how many tokens is it shared alone, and in the batch?",
        "A token's share is the step's time over the batch size. Work it out for both batches.",
        "The share alone over the share in the batch: tpot[1] / (tpot[16] / 16).",
    ),
    "check_talk_floor": (
        "A floor is what must be moved, over how fast it can be moved. What must every step read?",
        "All weights but the input embedding, of which one row is looked up. How many bytes is a number of 16 bits?",
        "(parameters - 32,000 * 2,048) * 2 bytes / 320e9 bytes a second is in seconds. Milliseconds are asked.",
    ),
    "check_regime": (
        "Put the measured time beside each of the two floors. Is it near one of them?",
        "The longer floor is a twentieth of the step, and 25 tokens in a pass take little longer than one. What costs so much?",
        "Where no floor explains the time, what is left is the price of making a pass at all. The course has a name for it.",
    ),
    "check_critical_batch": (
        "Write down two times for a step of batch B: that of the arithmetic and that of reading the weights. Which grows with B?",
        "For each weight, a step does 2 FLOPs for each sequence and reads 2 bytes once. When do the two take equally long?",
        "B * 2 / 989e12 = 2 / 3350e9. Solve it for B.",
    ),
    "check_llama_kv": (
        "Some heads ask and some heads are kept. Which of the two are in the cache?",
        "Count the numbers first: a key and a value, in each layer, for each KV head. Then make bytes of them.",
        "2 * 32 layers * 8 KV heads * 128 numbers * 2 bytes.",
    ),
    "check_requests_that_fit": (
        "Two kinds of things lie in that memory. One of them is there before the first request comes.",
        "Take the weights off, 2 bytes each. A request takes the bytes of 2,048 tokens; exercise 1 gave those of one.",
        "(usable_bytes - 8,030,261,248 * 2) / (2,048 * 131,072), and only whole requests count.",
    ),
    "check_prefix_saving": (
        "A cached prefix is not read again. Which of a request's times is spent on reading?",
        "Which share of full's TTFT does hit still take? What is saved is the rest.",
        "1 - hit.median(metrics.ttft_s) / full.median(metrics.ttft_s)",
    ),
    "check_cached_bill": (
        "There are three prices. Sort the tokens first: how many are billed at each?",
        "The cached tokens are among the prompt tokens. What remains of the prompt pays the full input price.",
        "((262,960 - 257,955) * 1.25 + 257,955 * 0.625 + 1,744 * 10) / 1,000,000",
    ),
    "check_machine_request": (
        "Go in steps: what does a second of the machine cost, how many seconds are needed, and who shares them?",
        "An hour has 3,600 seconds. With work in half of the hours, every busy second pays for an idle one as well.",
        "2.4 * 0.35 / 3600 / 0.5 is the batch's price. Its 8 requests share it.",
    ),
    "check_break_even": (
        "Let an input token cost 1 and an output token r. What does each of the two requests cost?",
        "Rag costs 1205 + 24 r, chat 60 + 80 r. At the ratio asked for, neither is cheaper.",
        "Set them equal and bring r to one side: (1205 - 60) / (80 - 24).",
    ),
}
