# make book, make test: nothing else is needed first. `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
RUN := $(BIN)/python

# One thread and one hash seed, so that two machines print the same digits; UTF-8 also where it is not the default.
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export PYTHONHASHSEED = 0
export PYTHONUTF8 = 1

# What the chapters and the tests read; fetched once into the cache.
DATA := minilm-weights minilm-config minilm-vocab bert-tiny-weights bert-tiny-config bert-tiny-tokenizer \
	film-reviews wikitext2-train wikitext2-valid wikitext2-test tatoeba-spa tatoeba-ukr \
	analogy-questions glove-vectors glove-words

.PHONY: help book test serve execute data parity mutate bench lab clean
.DEFAULT_GOAL := help

help:
	@echo "make book          build the static site into _build/html and say where it is"
	@echo "make test          run everything: lint, library, notebooks, site, browser"
	@echo "make serve         serve the built site on localhost (PORT=8000)"
	@echo "make execute       run every notebook and rewrite its outputs (NB=softmax: that one)"
	@echo "make data          fetch the weights and texts that the chapters use into the cache"
	@echo "make parity        hold the tokenizer against the reference on all the registry's text; slow"
	@echo "make lab           open JupyterLab in chapters/"
	@echo "make mutate        plant faults in the library, each of which the tests must catch; slow"
	@echo "make bench         time the library beside its peers; writes benchmarks/results.md"
	@echo "make clean         remove the built site; the virtual environment and the cache stay"

book:
	@$(PYTHON) scripts/bootstrap.py book
	@$(RUN) scripts/build.py

test:
	@$(PYTHON) scripts/bootstrap.py all
	@$(RUN) scripts/browser.py
	@$(RUN) -m bertlib.datasets fetch $(DATA)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(RUN) -m pytest tests/library tests/notebooks -n 2 --dist loadfile
	$(RUN) -m pytest --nbval --nbval-current-env chapters -n 2 --dist loadfile
	@$(RUN) scripts/build.py
	$(RUN) -m pytest tests/site -n 2 --dist load

serve: book
	@$(RUN) scripts/serve.py $(PORT)

execute:
	@$(PYTHON) scripts/bootstrap.py all
	@$(RUN) scripts/execute.py $(NB)

data:
	@$(PYTHON) scripts/bootstrap.py all
	@$(RUN) -m bertlib.datasets fetch all

parity:
	@$(PYTHON) scripts/bootstrap.py all
	@$(RUN) scripts/tokenizer_parity.py

lab:
	@$(PYTHON) scripts/bootstrap.py lab
	@$(BIN)/jupyter lab chapters

mutate:
	@$(PYTHON) scripts/bootstrap.py all
	@$(RUN) scripts/mutate.py

bench:
	@$(PYTHON) scripts/bootstrap.py bench
	@$(RUN) -W ignore -m benchmarks.import_time
	@$(RUN) -W ignore -m benchmarks.tokenization
	@$(RUN) -W ignore -m benchmarks.training
	@$(RUN) -W ignore -m benchmarks.inference

clean:
	@$(PYTHON) -c "import shutil; shutil.rmtree('_build', ignore_errors=True)"
