"""The model folder: what its files are called, how they are read, checked and found.

    config.json           the recipe: what the network is, and how text becomes tokens
    vocabulary.json       the tokens
    model.safetensors     weights of the whole network
    parser.safetensors    weights of a parsing network that learned from others, if there is one
    cache.json            a cache of recent words that was tuned for the model, if there is one
    metrics.jsonl, record.json, README.md     how training went, what came out, and the card
    training/             what a run needs to go on

A folder holds data, never code. It may come from a stranger: every file is read as a regular file of bounded size, and
its arrays are compared with the configuration, the vocabulary and each other before a number of them is used.
"""
