# AWS Batch puts no variables into the arguments of a container: its jobs begin a shell, which reads AWS_BATCH_JOB_ARRAY_INDEX.
FROM cryptodl:latest
ENTRYPOINT ["tini", "--"]
