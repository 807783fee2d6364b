"""A lake in a bucket, brought up to date every day in twelve shards (Airflow 3).

Each shard is a task of its own. Exit codes 1, 3, 6 and 7 mean that a later try may succeed, so Airflow tries the task again. Exit codes 2
and 4 mean that a retry does not help, so the task fails at once.
"""

import subprocess
from datetime import datetime, timedelta

from airflow.exceptions import AirflowFailException
from airflow.sdk import dag, task

SHARDS = 12
COMMAND = [
    "cryptodl",
    "vision",
    *["--market", "um", "--dataset", "klines", "--interval", "1m", "--symbols", "all"],
    *["--days", "7", "--out", "s3://lake/binance", "--max-duration", "3h", "--quiet"],
]


@dag(schedule="0 10 * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1, tags=["market data"])
def cryptodl_lake():
    @task(retries=3, retry_delay=timedelta(minutes=10), max_active_tis_per_dagrun=6)
    def download(shard: int) -> None:
        code = subprocess.run([*COMMAND, "--shard", f"{shard}/{SHARDS}"], check=False).returncode
        if code in (2, 4):
            raise AirflowFailException(f"cryptodl ended with {code}; a retry does not help")
        if code != 0:
            raise RuntimeError(f"cryptodl ended with {code}; the next try continues")

    @task(retries=1)
    def check() -> None:
        subprocess.run(["cryptodl", "coverage", "--out", "s3://lake/binance", "--min", "99"], check=True)

    download.expand(shard=list(range(SHARDS))) >> check()


cryptodl_lake()
