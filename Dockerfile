# An image of TimeDiff, with the versions of constraints.txt:
#
#   docker build --tag timediff .                            for CPUs
#   docker build --tag timediff --build-arg DEVICE=cuda .    for NVIDIA GPUs (docker run --gpus all)
#
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" timediff describe cohort
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS wheel
ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY constraints.txt LICENSE README.md pyproject.toml ./
RUN pip install --constraint constraints.txt hatchling
COPY src src
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .

FROM python:${PYTHON}-slim
ARG DEVICE=cpu
ARG EXTRAS=baselines,evaluate,excel,extract,postgres
# Of a mirror. pip reads the first by itself, and takes PyPI where none is given.
ARG PIP_INDEX_URL
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /opt/timediff
COPY constraints.txt ./
# PyTorch of PyPI is the one for CUDA. Its Triton kernels are built when they are first used, by a C compiler,
# of which any version will do.
# hadolint ignore=DL3008
RUN case "${DEVICE}" in \
      cpu) pip install --constraint constraints.txt --no-deps --index-url "${TORCH_INDEX}" torch ;; \
      cuda) apt-get update \
        && apt-get install --yes --no-install-recommends gcc libc6-dev \
        && rm -rf /var/lib/apt/lists/* \
        && pip install --constraint constraints.txt torch ;; \
      *) echo "DEVICE is cpu or cuda, not '${DEVICE}'" >&2; exit 2 ;; \
    esac
COPY --from=wheel /wheel wheel
RUN pip install --constraint constraints.txt "$(echo ./wheel/*.whl)[${EXTRAS}]"

# Whoever runs it may be another user, so caches are where everyone may write.
RUN useradd --uid 1000 --no-create-home timediff && install --directory --owner timediff /work
ENV HOME=/tmp
USER 1000
WORKDIR /work
# The first process of a container ignores SIGTERM unless it has a handler; Ctrl-C it always has.
STOPSIGNAL SIGINT
ENTRYPOINT ["timediff"]
CMD ["--help"]
