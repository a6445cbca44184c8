# isocheck with its kernels compiled, so that the first check of a large history is as fast as the next.
#
#   docker build -t isocheck .
#   docker run --rm -v "$PWD:/data" isocheck history.json
#
# Kernels are compiled for a generic processor of the architecture: an image runs on other machines than it was built on.

FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY plume_py plume_py
COPY histories histories
RUN python -m venv /opt/isocheck && /opt/isocheck/bin/pip install --no-cache-dir '.[postgres,mysql,sql]'

FROM python:3.13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends graphviz && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/isocheck /opt/isocheck
ENV PATH=/opt/isocheck/bin:$PATH NUMBA_CACHE_DIR=/home/isocheck/kernels NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=""
RUN python -m compileall -q /opt/isocheck/lib && useradd --create-home isocheck
# Kernels are read only from a folder that belongs to who runs them; another --user compiles them anew.
USER isocheck
RUN isocheck warm-up
WORKDIR /data
ENTRYPOINT ["isocheck"]
CMD ["--help"]
