# An image with `mooring run` and nothing that it does not need, from the pinned and hashed files in
# requirements/. Build it from a checkout:
#
#     docker build -t mooring:latest .

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements ./requirements
RUN python -m venv /build && /build/bin/pip install --require-hashes -r requirements/build.txt
RUN python -m venv /opt/mooring && /opt/mooring/bin/pip install --require-hashes -r requirements/live.txt
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/mooring/bin/pip install --no-index --no-deps /wheels/*.whl

FROM python:3.12-slim
COPY --from=build /opt/mooring /opt/mooring
ENV PATH=/opt/mooring/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["mooring"]
CMD ["run"]
